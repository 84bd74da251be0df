package main

import (
	"context"
	"errors"
	"sync"
)

// stage is a set of functions that run together and stop together.
type stage []func(ctx context.Context) error

// inOrder runs all stages concurrently. When ctx ends or a function fails, the stages stop one after another: each when
// all functions of the one before it have returned. It returns the errors.
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
