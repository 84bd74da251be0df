package main

import (
	"context"
	"errors"
	"sync"
)

// stage is what runs together and stops together.
type stage []func(ctx context.Context) error

// inOrder runs all stages at once. When ctx ends, or something fails, they stop one after another: a stage when all of
// the one before it has ended. It returns what failed.
func inOrder(ctx context.Context, stages ...stage) error {
	first, fail := context.WithCancel(ctx)
	defer fail()
	var mu sync.Mutex
	var errs []error
	var stops []func()
	for _, s := range stages {
		inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
		var members sync.WaitGroup
		for _, run := range s {
			members.Go(func() {
				if err := run(inner); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
					fail()
				}
			})
		}
		stops = append(stops, func() {
			cancel()
			members.Wait()
		})
	}
	<-first.Done()
	for _, stop := range stops {
		stop()
	}
	return errors.Join(errs...)
}
