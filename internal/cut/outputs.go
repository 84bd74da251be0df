package cut

import (
	"fmt"
	"sync"
)

// outputs are those of one callback that are not acknowledged. Goka must not take the callback's record for done ahead
// of them, and is told of all of them at once: when none is left, and again where the callback emits more after that.
type outputs struct {
	mu   sync.Mutex
	open int
	err  error       // the first
	done func(error) // tells Goka; nil where none is open
}

// add counts one that is about to go. It is called by the callback, deferCommit is Goka's.
func (o *outputs) add(deferCommit func() func(error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == 0 {
		o.done = deferCommit()
	}
	o.open++
}

// acknowledged implements waits.
func (o *outputs) acknowledged(topic string, err error) {
	if err != nil {
		err = fmt.Errorf("error emitting to %s: %v", topic, err) // as Goka puts it; Failed has the cause
	}
	if done, err := o.left(err); done != nil {
		done(err)
	}
}

// left counts one out. done is to be called with what it returns, and is nil where others are open.
func (o *outputs) left(err error) (done func(error), first error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	if o.open--; o.open > 0 {
		return nil, nil
	}
	done, first = o.done, o.err
	o.done, o.err = nil, nil
	return done, first
}
