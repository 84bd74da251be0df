package main

import (
	"sync"

	"github.com/turntable-streams/turntable/processors"
)

// whenRunning returns a function that calls done when a processor runs for the first time.
func whenRunning(done func()) func(processors.State) {
	once := sync.OnceFunc(done)
	return func(s processors.State) {
		if s == processors.Running {
			once()
		}
	}
}
