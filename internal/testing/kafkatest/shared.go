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

// EnvBootstrap names the cluster that Shared uses instead of starting one: addresses, host:port, separated by commas.
const EnvBootstrap = "KAFKA_BOOTSTRAP_SERVERS"

const (
	// startLimit is long for the first start on a machine, which fetches the jars.
	startLimit = 5 * time.Minute
	// foreignLimit is for a cluster that somebody else started, perhaps just now.
	foreignLimit = 30 * time.Second
)

// New starts a cluster for one test, which it fails where that cannot be; the cluster ends with the test. The nodes'
// logs go to a failed test's output.
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

// Shared is where to bootstrap from: the one broker that all tests of the binary share, started by the first that asks,
// or the cluster of KAFKA_BOOTSTRAP_SERVERS. Tests tell their topics and groups apart by name and leave the broker
// running. A binary that calls it runs its tests through Main. Where there is no broker to be had, the test fails.
func Shared(tb testing.TB) []string {
	tb.Helper()
	addrs, err := binary.bootstrap()
	if err != nil {
		tb.Fatal(err)
	}
	return addrs
}

// TestingM is what *testing.M and goleak call a test binary's tests.
type TestingM interface{ Run() int }

// Main ends the shared broker after the tests of a binary:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(kafkatest.Main(m)) }
//
// or os.Exit(kafkatest.Main(m).Run()). It starts nothing itself.
func Main(m TestingM) TestingM { return &tests{m: m, shared: &binary} }

type tests struct {
	m      TestingM
	shared *shared
}

func (t *tests) Run() int {
	t.shared.admit(true)
	code := t.m.Run()
	if err := t.shared.end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// binary is this test binary's broker. It is a variable of the package because a test binary has nothing else that all
// its tests and TestMain can reach.
var binary shared

// shared is a broker that is started when it is first asked for.
type shared struct {
	mu       sync.Mutex
	admitted bool
	asked    bool
	cluster  *Cluster
	addrs    []string
	err      error
}

func (s *shared) admit(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admitted = yes
}

// bootstrap starts at most once: a start that failed fails every test alike.
func (s *shared) bootstrap() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.admitted {
		return nil, errors.New("kafkatest: Shared needs a TestMain that runs the tests by kafkatest.Main")
	}
	if !s.asked {
		s.asked = true
		s.cluster, s.addrs, s.err = obtain(os.Getenv(EnvBootstrap), foreignLimit)
	}
	return append([]string(nil), s.addrs...), s.err
}

func (s *shared) end() error {
	s.admit(false)
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Close()
}

// obtain starts a broker, or waits for the foreign cluster to answer, if there is one; then the Cluster is nil.
func obtain(foreign string, limit time.Duration) (*Cluster, []string, error) {
	if foreign != "" {
		addrs, err := reach(foreign, limit)
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

func reach(foreign string, limit time.Duration) ([]string, error) {
	var addrs []string
	for _, addr := range strings.Split(foreign, ",") {
		if addr = strings.TrimSpace(addr); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("kafkatest: %s=%s names no address", EnvBootstrap, foreign)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	client, err := dial(addrs...)
	if err != nil {
		return nil, fmt.Errorf("kafkatest: %s=%s: %w", EnvBootstrap, foreign, err)
	}
	defer client.Close()
	poll := time.NewTicker(answerPoll)
	defer poll.Stop()
	for {
		if err = ask(ctx, client, nil); err == nil {
			return addrs, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("kafkatest: %s=%s does not answer: %w", EnvBootstrap, foreign, err)
		case <-poll.C:
		}
	}
}
