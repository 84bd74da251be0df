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
		return fmt.Errorf("unit: %w: %w", errUnreachable, sarama.Wrap(sarama.ErrOutOfBrokers, cause))
	}
	refused := errors.New("connection refused")
	u := &Unit{}
	u.health.now = time.Now
	require.False(t, u.outage(unreachable(refused)), "it was never running: the addresses may be wrong")
	u.health.enter(Running)
	u.health.enter(Degraded)
	require.True(t, u.outage(unreachable(refused)))
	require.False(t, u.outage(unreachable(sarama.Wrap(sarama.ErrSASLAuthenticationFailed, errors.New("who are you")))))
	require.False(t, u.outage(unreachable(&tls.CertificateVerificationError{Err: errors.New("expired")})))
	require.False(t, u.outage(sarama.ErrOutOfBrokers), "a client of the running attempt's")
	require.False(t, u.outage(errors.New("a record failed")))
}
