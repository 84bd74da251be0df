package unit_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/turntable-streams/turntable/internal/testbroker"
)

// anyBroker returns the broker that the build tag kafka chooses, with the topics of countingOf(name), two partitions each.
func anyBroker(t testing.TB) (brokers []string, name string) {
	t.Helper()
	brokers, name = testbroker.Start(t), testbroker.Agent()
	created, err := kadm.NewClient(dial(t, brokers)).CreateTopics(t.Context(), 2, 1, nil, name+"-in", name+"-out")
	require.NoError(t, err)
	require.NoError(t, created.Error())
	return brokers, name
}

// fate is what becomes of a request.
type fate int

const (
	sent   fate = iota
	broken      // the connection is closed and the request is not sent
	stuck       // the request is not sent and nothing is answered, as by a broker that hangs
)

// wire is the network of one unit. It works for every broker, since it sees requests before they are sent.
type wire struct {
	mu    sync.Mutex
	rule  func(key int16, request []byte) fate
	stuck []net.Conn
}

// decide sets what becomes of requests from now on; nil sends them all and closes the connections that are stuck.
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

// Write writes one request, which is how Sarama calls it. The API key stands behind the length.
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
