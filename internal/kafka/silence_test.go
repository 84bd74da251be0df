package kafka

import (
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// piped is a dialer whose broker is the other end of a pipe.
type piped struct{ broker chan net.Conn }

func (p piped) Dial(string, string) (net.Conn, error) {
	client, broker := net.Pipe()
	p.broker <- broker
	return client, nil
}

func TestSilentBrokerTimesOut(t *testing.T) {
	const limit, long, longest = 50 * time.Millisecond, 400 * time.Millisecond, 2 * time.Minute
	for name, c := range map[string]struct {
		key   byte
		until time.Duration // Sarama's own deadline
		min   time.Duration
	}{
		"metadata": {key: 3, until: longest, min: limit},
		"produce":  {key: produceKey, until: longest, min: limit + 100*time.Millisecond},
		"fetch":    {key: fetchKey, until: longest, min: limit + 100*time.Millisecond},
		"join":     {key: joinKey, until: long, min: long},
		"sync":     {key: syncKey, until: long, min: long},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf := Config()
				conf.Producer.Timeout, conf.Consumer.MaxWaitTime = 100*time.Millisecond, 100*time.Millisecond
				inner := piped{broker: make(chan net.Conn, 1)}
				conf.Net.Proxy.Enable, conf.Net.Proxy.Dialer = true, inner
				NewSilence(limit, 0).Limit(conf)
				client, err := conf.Net.Proxy.Dialer.Dial("tcp", "broker:9092")
				require.NoError(t, err)
				defer client.Close()
				broker := <-inner.broker
				defer broker.Close()
				go func() { _, _ = broker.Read(make([]byte, 8)) }()
				began := time.Now() // the limit counts from the request
				_, err = client.Write([]byte{0, 0, 0, 4, 0, c.key, 0, 0})
				require.NoError(t, err)
				require.NoError(t, client.SetReadDeadline(time.Now().Add(c.until)))
				_, err = client.Read(make([]byte, 8))
				var silent net.Error
				require.ErrorAs(t, err, &silent)
				require.True(t, silent.Timeout())
				require.GreaterOrEqual(t, time.Since(began), c.min)
				require.Less(t, time.Since(began), longest/2)
				// Sarama would ask again on the same connection, in another version.
				_, err = client.Write([]byte{0, 0, 0, 4, 0, c.key, 0, 0})
				require.ErrorIs(t, err, ErrSilent)
				_, err = client.Read(make([]byte, 8))
				require.ErrorIs(t, err, ErrSilent)
			})
		})
	}
}

// A timeout of one connection affects all connections that share the Silence.
func TestSilentBrokerIsNotDialedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, hold = 20 * time.Millisecond, 4 * time.Second
		s := NewSilence(limit, hold)
		dial := func(address string) (net.Conn, error) {
			conf := Config()
			inner := piped{broker: make(chan net.Conn, 1)}
			conf.Net.Proxy.Enable, conf.Net.Proxy.Dialer = true, inner
			s.Limit(conf)
			c, err := conf.Net.Proxy.Dialer.Dial("tcp", address)
			if err == nil {
				broker := <-inner.broker
				t.Cleanup(func() { _, _ = c.Close(), broker.Close() })
			}
			return c, err
		}
		c, err := dial("one:9092")
		require.NoError(t, err)
		another, err := dial("one:9092")
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() {
			_, err := another.Read(make([]byte, 1)) // for as long as it takes
			ended <- err
		}()
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Error(t, <-ended)
		_, err = dial("one:9092")
		require.ErrorIs(t, err, ErrSilent)
		_, err = dial("two:9092")
		require.NoError(t, err)
		<-time.After(hold)
		_, err = dial("one:9092")
		require.NoError(t, err, "it is tried again")
	})
}

// An answer in small pieces does not time out while pieces arrive.
func TestSlowAnswerIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, pieces = 3 * time.Second, 8
		conf := Config()
		inner := piped{broker: make(chan net.Conn, 1)}
		conf.Net.Proxy.Enable, conf.Net.Proxy.Dialer = true, inner
		NewSilence(limit, 0).Limit(conf)
		client, err := conf.Net.Proxy.Dialer.Dial("tcp", "broker:9092")
		require.NoError(t, err)
		defer client.Close()
		broker := <-inner.broker
		defer broker.Close()
		go func() {
			_, _ = broker.Read(make([]byte, 8))
			for range pieces {
				<-time.After(limit / (pieces - 2))
				_, _ = broker.Write([]byte{1})
			}
		}()
		_, err = client.Write([]byte{0, 0, 0, 4, 0, 3, 0, 0})
		require.NoError(t, err)
		require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Minute)))
		for range pieces {
			_, err = client.Read(make([]byte, 1))
			require.NoError(t, err)
		}
	})
}

func TestEncryptedConnectionsKeepTheirTimeout(t *testing.T) {
	conf := Config()
	conf.Net.TLS.Enable = true
	NewSilence(time.Second, 0).Limit(conf)
	require.False(t, conf.Net.Proxy.Enable)
	require.Equal(t, time.Second, conf.Net.DialTimeout)
}
