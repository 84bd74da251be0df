package think

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
)

const (
	// leastRest and mostRest bound how long a model that was passed over is not asked first.
	leastRest = 10 * time.Second
	mostRest  = 5 * time.Minute
)

// Fallback returns a model that asks the given ones, in their order of preference. The next one is asked if a model
//
//   - returns an Unavailable, ErrUnreachable or ErrTimeout while the step's deadline has not passed
//   - is not accessible: a ProviderError with the status 401, 402, 403 or 404
//
// and the model that failed is asked last for the time that its provider asks for, at least 10 seconds and at most 5 minutes, so
// that other steps do not wait for it too. Other errors are returned: another model would be asked the same. If all fail and one
// of them may succeed later, the error is an Unavailable, after which the worker asks again (Config.Retry).
//
// A reply that breaks after its first piece was streamed cannot be continued by another model. It fails, and the worker's
// next call, which publishes a new attempt, begins with the next model. What failed calls have used is added to the usage of the
// reply.
//
// Fallback is a Streamer, whose pieces are those of the models that are Streamers and the whole replies of others, and a ToolUser,
// which gives tools to the models that are ToolUsers. Its methods are safe for concurrent use. It panics without a model.
func Fallback(models ...Model) interface {
	Streamer
	ToolUser
} {
	if len(models) == 0 || slices.Contains(models, nil) {
		panic("think: Fallback needs models")
	}
	return newFallback(models)
}

func newFallback(models []Model) *fallback {
	return &fallback{models: models, clock: clock.System(), rests: make([]time.Time, len(models))}
}

type fallback struct {
	models []Model
	clock  processors.Clock
	made   []interface{ Close() } // by WithTools

	mu    sync.Mutex
	rests []time.Time // until when a model is asked last
}

// Think implements Model.
func (f *fallback) Think(ctx context.Context, step Step) (Reply, error) {
	reply, _, err := Collect(f.each(ctx, step, func(m Model) iter.Seq2[Delta, error] { return whole(ctx, m, step) }))
	return reply, err
}

// Stream implements Streamer.
func (f *fallback) Stream(ctx context.Context, step Step) iter.Seq2[Delta, error] {
	return f.each(ctx, step, func(m Model) iter.Seq2[Delta, error] {
		if s, ok := m.(Streamer); ok {
			return s.Stream(ctx, step)
		}
		return whole(ctx, m, step)
	})
}

// WithTools implements ToolUser.
func (f *fallback) WithTools(tools ...Tool) (Model, error) {
	with := newFallback(slices.Clone(f.models))
	for i, m := range with.models {
		u, ok := m.(ToolUser)
		if !ok {
			continue
		}
		var err error
		if with.models[i], err = u.WithTools(tools...); err != nil {
			with.Close()
			return nil, err
		}
		if c, ok := with.models[i].(interface{ Close() }); ok {
			with.made = append(with.made, c)
		}
	}
	return with, nil
}

// Close closes the models that WithTools has made.
func (f *fallback) Close() {
	for _, c := range f.made {
		c.Close()
	}
}

// each yields the pieces of the first model that answers.
func (f *fallback) each(ctx context.Context, step Step, ask func(Model) iter.Seq2[Delta, error]) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		var used Usage
		var failed []error
		for _, i := range f.order() {
			begun, last := false, used
			var err error
			for d, broken := range ask(f.models[i]) {
				if broken != nil {
					err = broken
					break
				}
				if d.Usage != nil {
					last = used.plus(*d.Usage)
					d.Usage = &last
				}
				begun = begun || d.Text != "" || d.Thought != "" || d.Call != nil
				if !yield(d, nil) {
					return
				}
			}
			if err == nil {
				return
			}
			used = last
			over := ctx.Err() != nil || !passes(err)
			if !over {
				f.rest(i, err)
			}
			if failed = append(failed, err); over || begun {
				yield(Delta{}, err)
				return
			}
		}
		if used != (Usage{}) && !yield(Delta{Usage: &used}, nil) {
			return
		}
		yield(Delta{}, all(failed))
	}
}

// whole yields the reply of a model that does not stream.
func whole(ctx context.Context, m Model, step Step) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		reply, err := m.Think(ctx, step)
		usage := reply.usage()
		if (usage != Usage{}) && !yield(Delta{Usage: &usage}, nil) {
			return
		}
		if err != nil {
			yield(Delta{}, err)
			return
		}
		for _, b := range reply.Blocks {
			if !yield(Delta{Text: b.Text, Call: b.Call, EndBlock: true}, nil) {
				return
			}
		}
		yield(Delta{State: reply.State}, nil)
	}
}

// passes reports whether the next model is asked after an error.
func passes(err error) bool {
	var p *ProviderError
	if transient(err) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrTimeout) {
		return true
	}
	return errors.As(err, &p) && slices.Contains(inaccessible, p.Status)
}

// inaccessible are the statuses of a model that the account cannot use: unauthorized, payment required, forbidden, not found.
var inaccessible = []int{401, 402, 403, 404}

// all returns the error of a step that no model answered.
func all(failed []error) error {
	if len(failed) == 1 {
		return failed[0]
	}
	after, later := time.Duration(0), false
	for _, err := range failed {
		var u *Unavailable
		if errors.As(err, &u) && (!later || u.After < after) {
			after, later = u.After, true
		}
	}
	err := errors.Join(failed...)
	if later {
		return &Unavailable{After: after, Err: err}
	}
	return err
}

// order returns the models in the order in which they are asked: those that rest come last, the one whose rest ends first before
// the others.
func (f *fallback) order() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	order := make([]int, len(f.models))
	for i := range order {
		order[i] = i
	}
	until := func(i int) int64 { return max(f.rests[i].Sub(now), 0).Nanoseconds() }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(until(a), until(b)) })
	return order
}

// rest lets a model be asked last for a time.
func (f *fallback) rest(i int, err error) {
	wait := leastRest
	var u *Unavailable
	if errors.As(err, &u) {
		wait = min(max(u.After, leastRest), mostRest)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rests[i] = f.clock.Now().Add(wait)
}
