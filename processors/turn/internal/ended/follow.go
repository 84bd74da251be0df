package ended

import (
	"context"
	"sync"

	"github.com/turntable-streams/turntable/processors"
)

// Follow observes the records that are written to topic, an agent's message-output, from now on. It does not block. The
// caller must call stop, which waits until it no longer observes. An error concerns the options.
func (t *Turns) Follow(
	brokers []string, topic string, opts []processors.Option,
) (stop func(), err error) {
	f, err := processors.NewFollower(brokers, []string{topic}, t.Observe, opts...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) }) // Run returns an error only for a second call
	return func() {
		cancel()
		running.Wait()
	}, nil
}
