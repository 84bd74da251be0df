package instance_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// anyBroker returns the broker that the build tag kafka chooses, with the topics of countingOf(name) and more of that
// prefix, two partitions each. A new broker is waited for until the partitions have leaders and the group a coordinator.
func anyBroker(t testing.TB, more ...string) (brokers []string, name string) {
	t.Helper()
	brokers, name = testbroker.Start(t), testbroker.Agent()
	topics := []string{name + "-in", name + "-out"}
	for _, topic := range more {
		topics = append(topics, name+"-"+topic)
	}
	admin := kadm.NewClient(dial(t, brokers))
	created, err := admin.CreateTopics(t.Context(), 2, 1, nil, topics...)
	require.NoError(t, err)
	require.NoError(t, created.Error())
	eventually(t, func() bool {
		ends, err := admin.ListEndOffsets(t.Context(), topics...)
		return err == nil && ends.Error() == nil
	})
	eventually(t, func() bool {
		_, err := admin.FetchOffsets(t.Context(), name)
		return err == nil || errors.Is(err, kerr.GroupIDNotFound)
	})
	return brokers, name
}

// fate is what happens to a request.
type fate int

const (
	sent   fate = iota
	broken      // the connection is closed and the request is not sent
	stuck       // the request is not sent and nothing is answered, as by a broker that hangs
)

// wire is the network of one instance. It works for every broker, since it sees requests before they are sent.
type wire struct {
	mu    sync.Mutex
	rule  func(key int16, request []byte) fate
	stuck []net.Conn
}

// decide sets what happens to later requests; nil sends them all and closes the connections that are stuck.
func (w *wire) decide(rule func(key int16, request []byte) fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rule = rule; rule != nil {
		return
	}
	for _, c := range w.stuck {
		_ = c.Close()
	}
	w.stuck = nil
}

// config adds the network to lively.
func (w *wire) config() *sarama.Config {
	c := lively()
	c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, w
	return c
}

// Dial implements proxy.Dialer.
func (w *wire) Dial(network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: 10 * time.Second}).Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &wired{Conn: c, wire: w}, nil
}

type wired struct {
	net.Conn
	wire *wire
}

// Write writes one request: Sarama calls it once per request. The API key follows the length.
func (c *wired) Write(request []byte) (int, error) {
	c.wire.mu.Lock()
	outcome := sent
	if c.wire.rule != nil && len(request) >= 6 {
		outcome = c.wire.rule(int16(binary.BigEndian.Uint16(request[4:])), request)
	}
	if outcome == stuck {
		c.wire.stuck = append(c.wire.stuck, c.Conn)
	}
	c.wire.mu.Unlock()
	switch outcome {
	case broken:
		_ = c.Close()
		return 0, fmt.Errorf("request of %d bytes: %w", len(request), net.ErrClosed)
	case stuck:
		return len(request), nil
	}
	return c.Conn.Write(request)
}
