package kafka

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// greeted returns a configuration with a limit, and its broker's ends of connections.
func greeted(limit, hold time.Duration) (dial func() (net.Conn, error), broker chan net.Conn) {
	conf := Config()
	inner := piped{broker: make(chan net.Conn, 1)}
	conf.Net.Proxy.Enable, conf.Net.Proxy.Dialer = true, inner
	limitGreeting(conf, limit, hold)
	return func() (net.Conn, error) { return conf.Net.Proxy.Dialer.Dial("tcp", "broker:9092") }, inner.broker
}

func TestBrokerThatNeverAnswersTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, brokers := greeted(20*time.Millisecond, time.Hour)
		client, err := dial()
		require.NoError(t, err)
		broker := <-brokers
		defer broker.Close()
		go func() { _, _ = broker.Read(make([]byte, 8)) }()
		_, err = client.Write([]byte("hello"))
		require.NoError(t, err)
		require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err = client.Read(make([]byte, 8))
		require.ErrorIs(t, err, ErrSilent)
		require.ErrorContains(t, err, "broker:9092")
		_, err = client.Write([]byte("hello"))
		require.ErrorIs(t, err, ErrSilent)
		_, err = client.Read(make([]byte, 8))
		require.ErrorIs(t, err, ErrSilent)
		require.NoError(t, client.Close())
		_, err = dial()
		require.ErrorIs(t, err, ErrSilent, "no new connection for a while")
	})
}

// recorded is a connection that has the deadline of its last SetReadDeadline.
type recorded struct {
	net.Conn
	deadline time.Time
}

func (r *recorded) SetReadDeadline(t time.Time) error {
	r.deadline = t
	return nil
}

func (r *recorded) Read(b []byte) (int, error) { return 1, nil }

func TestBrokerThatHasAnsweredMayTakeItsTime(t *testing.T) {
	t.Parallel()
	conn := &recorded{}
	c := &greetingConn{Conn: conn, silence: NewSilence(time.Minute, 0), address: "broker:9092"}
	until := time.Now().Add(time.Hour)
	require.NoError(t, c.SetReadDeadline(until))
	_, err := c.Read(make([]byte, 1))
	require.NoError(t, err)
	require.Equal(t, until, conn.deadline, "the caller's deadline counts again")
	later := until.Add(time.Hour)
	require.NoError(t, c.SetReadDeadline(later))
	_, err = c.Read(make([]byte, 1))
	require.NoError(t, err)
	require.Equal(t, later, conn.deadline)
}

func TestShorterDeadlineOfTheCallerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, brokers := greeted(time.Hour, 0)
		client, err := dial()
		require.NoError(t, err)
		defer client.Close()
		defer (<-brokers).Close()
		require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Millisecond)))
		_, err = client.Read(make([]byte, 1))
		require.ErrorIs(t, err, ErrSilent)
	})
}
