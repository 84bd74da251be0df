package processors_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
)

// What was in a partition before a processor reads it may have been handled by its predecessor. Under exactly once, what that
// one sent without committing it never became visible.
func TestCallbackThatMayBeARepeatKnowsWhereItsAnswersAre(t *testing.T) {
	for guarantee, first := range map[processors.Guarantee]string{
		processors.AtLeastOnce: "0 true", processors.ExactlyOnce: "0 false",
	} {
		t.Run(string(guarantee), func(t *testing.T) {
			t.Parallel()
			f := newField(t, 1)
			seen := make(chan string, 10)
			graph := graphOf(func(c *processors.Context, in codec.Decoded[asked]) error {
				from, repeated := c.AnswersFrom(asks.Stream())
				seen <- strconv.FormatInt(from, 10) + " " + strconv.FormatBool(repeated)
				return c.SetValue(in.Value.Text)
			}, codec.String())
			run := func() (stop func()) {
				p, err := processors.New(f.addrs, graph, processors.WithGuarantee(guarantee), processors.WithInstance("a"))
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				ran := make(chan error, 1)
				go func() { ran <- p.Run(ctx) }()
				return func() {
					cancel()
					require.NoError(t, <-ran)
				}
			}
			put := func() { f.put(0, []byte("s"), quote("s", "x")) }
			put()
			put()
			stop := run()
			require.Equal(t, []string{first, first}, []string{<-seen, <-seen})
			put()
			require.Equal(t, "0 false", <-seen, "it was written while the processor ran")
			stop()
			put()
			stop = run()
			defer stop()
			again := map[bool]string{true: "3 true", false: "0 false"}[guarantee == processors.AtLeastOnce]
			require.Equal(t, again, <-seen)
		})
	}
}
