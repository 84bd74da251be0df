package cut

import (
	"fmt"
	"sync"
)

// outputs counts the unacknowledged outputs of one callback. Goka must not mark the callback's record as done before they
// are acknowledged. One deferred commit covers all of them; it is finished when none is left, and the callback's next
// output starts another one.
type outputs struct {
	mu   sync.Mutex
	open int
	err  error       // the first
	done func(error) // finishes Goka's deferred commit; nil if none is open
}

// add counts an output that is about to be sent. The callback calls it; deferCommit is Goka's.
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
		err = fmt.Errorf("error emitting to %s: %v", topic, err) // Goka's own text; Failed has the cause
	}
	if done, err := o.left(err); done != nil {
		done(err)
	}
}

// left counts one output as acknowledged. The caller must call done with first; done is nil while others are open.
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
