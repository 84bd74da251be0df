package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// EnvBootstrap is the environment variable with the cluster that Shared uses instead of starting one: addresses, host:port,
// separated by commas.
const EnvBootstrap = "KAFKA_BOOTSTRAP_SERVERS"

const (
	// startLimit is the timeout of a start. It is long because the first start on a machine fetches the jars.
	startLimit = 5 * time.Minute
	// externalLimit is how long to wait for the cluster in KAFKA_BOOTSTRAP_SERVERS, which may still be starting.
	externalLimit = 30 * time.Second
)

// New starts a cluster for one test and closes it with the test. The test fails if the cluster cannot be started. The
// output of a failed test includes the nodes' logs.
func New(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	c, err := Start(ctx, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			for i := range c.nodes {
				tb.Logf("log of node %d:\n%s", i+1, c.Log(i+1))
			}
		}
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Shared returns the bootstrap addresses of the broker that all tests of the binary share, which the first call starts,
// or those of KAFKA_BOOTSTRAP_SERVERS. Tests use different names for their topics and groups, and leave the broker
// running. A binary that calls Shared runs its tests with Main. The test fails if there is no broker.
func Shared(tb testing.TB) []string {
	tb.Helper()
	addrs, err := binary.bootstrap()
	if err != nil {
		tb.Fatal(err)
	}
	return addrs
}

// TestingM is the interface of *testing.M that goleak uses.
type TestingM interface{ Run() int }

// Main stops the shared broker after the tests of a binary:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(kafkatest.Main(m)) }
//
// or os.Exit(kafkatest.Main(m).Run()). It does not start the broker.
func Main(m TestingM) TestingM { return &tests{m: m, shared: &binary} }

type tests struct {
	m      TestingM
	shared *shared
}

func (t *tests) Run() int {
	t.shared.setAllowed(true)
	code := t.m.Run()
	if err := t.shared.end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// binary is the broker of this test binary. It is a package variable because all tests and TestMain need access to it.
var binary shared

// shared is a broker that is started on first use.
type shared struct {
	mu      sync.Mutex
	allowed bool
	started bool
	cluster *Cluster
	addrs   []string
	err     error
}

func (s *shared) setAllowed(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = yes
}

// bootstrap starts the broker at most once: after a failed start, every test fails with the same error.
func (s *shared) bootstrap() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.allowed {
		return nil, errors.New("kafkatest: Shared needs a TestMain that runs the tests with kafkatest.Main")
	}
	if !s.started {
		s.started = true
		s.cluster, s.addrs, s.err = startOrConnect(os.Getenv(EnvBootstrap), externalLimit)
	}
	return append([]string(nil), s.addrs...), s.err
}

func (s *shared) end() error {
	s.setAllowed(false)
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Close()
}

// startOrConnect starts a broker. If external is not empty, it waits for that cluster instead and returns a nil Cluster.
func startOrConnect(external string, limit time.Duration) (*Cluster, []string, error) {
	if external != "" {
		addrs, err := waitForExternal(external, limit)
		return nil, addrs, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	c, err := Start(ctx, Options{})
	if err != nil {
		return nil, nil, err
	}
	return c, c.Bootstrap(), nil
}

func waitForExternal(external string, limit time.Duration) ([]string, error) {
	var addrs []string
	for _, addr := range strings.Split(external, ",") {
		if addr = strings.TrimSpace(addr); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("kafkatest: %s=%s contains no address", EnvBootstrap, external)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	client, err := dial(addrs...)
	if err != nil {
		return nil, fmt.Errorf("kafkatest: %s=%s: %w", EnvBootstrap, external, err)
	}
	defer client.Close()
	poll := time.NewTicker(answerPoll)
	defer poll.Stop()
	for {
		if err = queryBrokers(ctx, client, nil); err == nil {
			return addrs, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("kafkatest: %s=%s does not answer: %w", EnvBootstrap, external, err)
		case <-poll.C:
		}
	}
}
