package instance

import (
	"crypto/tls"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
)

// Brokers that cannot be reached are waited for; those that can be and refuse are not.
func TestOnlyUnreachableBrokersAreAnOutage(t *testing.T) {
	unreachable := func(cause error) error {
		return fmt.Errorf("instance: %w: %w", errUnreachable, sarama.Wrap(sarama.ErrOutOfBrokers, cause))
	}
	refused := errors.New("connection refused")
	inst := &Instance{}
	inst.health.now = time.Now
	require.False(t, inst.outage(unreachable(refused)), "it was never running: the addresses may be wrong")
	inst.health.enter(Running)
	inst.health.enter(Degraded)
	require.True(t, inst.outage(unreachable(refused)))
	require.False(t, inst.outage(unreachable(sarama.Wrap(sarama.ErrSASLAuthenticationFailed, errors.New("who are you")))))
	require.False(t, inst.outage(unreachable(&tls.CertificateVerificationError{Err: errors.New("expired")})))
	require.False(t, inst.outage(sarama.ErrOutOfBrokers), "a client of the current run's")
	require.False(t, inst.outage(errors.New("a record failed")))
}
