//go:build kafka

package turns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

// The long form: on a real Kafka.
const (
	short  = false
	rounds = 10 // how often a fault is done
	users  = 4  // who ask at a time
)

// brokerFaults are done to a Kafka of their own.
func brokerFaults() []fault {
	return []fault{
		{name: "broker SIGKILL, restarted at once", play: killedBroker, alone: true, cluster: one},
		{name: "broker SIGSTOP for longer than the session timeout, SIGCONT", play: pausedBroker, alone: true, cluster: one},
	}
}

func one(t *testing.T) *kafkatest.Cluster { return kafkatest.New(t, kafkatest.Options{}) }

func killedBroker(f *field) {
	f.start("a")
	f.ask()
	for range 3 {
		f.answered(10)
		require.NoError(f, f.cluster.Kill(1))
		require.NoError(f, f.cluster.Restart(f.ctx, 1))
	}
	f.answered(10)
	f.figure("3 kills of the broker")
}

func pausedBroker(f *field) {
	f.start("a")
	f.ask()
	f.answered(10)
	require.NoError(f, f.cluster.Pause(1))
	select {
	case <-time.After(2 * sessionTimeout):
	case <-f.ctx.Done():
	}
	require.NoError(f, f.cluster.Resume(1))
	f.answered(20)
	f.figure("paused for %s", 2*sessionTimeout)
}
