package worker

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// The source learns that a record is lost only when it is asked, right before the call.
func TestNoCallBeginsForARecordThatIsLost(t *testing.T) {
	calls := 0
	limit := Limit[Record]{Name: "all", Concurrency: 1}
	for name, c := range map[string]struct {
		handle Handler
		config Config
	}{
		"handler":          {handle: func(context.Context, Record) error { calls++; return nil }},
		"limits of worker": {func(context.Context, Record) error { calls++; return nil }, Config{Limits: []Limit[Record]{limit}}},
		"Enter": {handle: func(ctx context.Context, r Record) error {
			if r.Deliveries == 1 { // lost while the handler prepares the call
				ctx.Value(slotKey{}).(*slot).confirm(ctx)
			}
			leave, err := Enter(ctx, NewLimiter(), "s", r, limit)
			if err == nil {
				calls++
				leave()
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			calls = 0
			r := newRig(t, c.handle, c.config)
			ctx, lose := context.WithCancelCause(t.Context())
			verdict := r.deliver(ctx, source.Delivery{Remaining: 3, Confirm: func(context.Context) {
				lose(errors.Join(source.ErrLost, errors.New("its lock expired")))
			}})
			require.Equal(t, source.Released, <-verdict)
			require.Zero(t, calls)
			require.Zero(t, r.logs.FilterMessageSnippet("handler failed").Len(), "a lost record is no failure")
			require.Equal(t, source.Settled, <-r.deliver(t.Context(), source.Delivery{Remaining: 3, Confirm: func(context.Context) {}}))
			require.Equal(t, 1, calls)
		})
	}
}
