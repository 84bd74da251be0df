//go:build !kafka

package testbroker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// Embedded is true if Start starts an embedded broker, and false if it uses a real Kafka.
const Embedded = true

// Start returns the bootstrap addresses of the test binary's embedded broker, which the first call starts. The test fails if it
// cannot be started. Topics that are created with the broker's default have one partition.
func Start(tb testing.TB) []string {
	tb.Helper()
	return StartWithLock(tb, 0)
}

// StartWithLock is Start for workers whose share group has the given lock: an embedded broker has one for all groups, so that
// there is a broker for each lock. On a real Kafka, workers set that of their group.
func StartWithLock(tb testing.TB, lock time.Duration) []string {
	tb.Helper()
	b, err := shared.broker(lock)
	if err != nil {
		tb.Fatal(err)
	}
	return b.Addrs()
}

// Main runs the tests of a binary that calls Start: goleak.VerifyTestMain(testbroker.Main(m)). It closes their brokers after the
// tests.
func Main(m TestingM) TestingM { return closing{m, &shared} }

type closing struct {
	TestingM
	*brokers
}

func (c closing) Run() int {
	code := c.TestingM.Run()
	if err := c.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// brokers are those of a test binary, by their lock.
type brokers struct {
	mu     sync.Mutex
	byLock map[time.Duration]*embedded.Broker
}

var shared = brokers{byLock: map[time.Duration]*embedded.Broker{}}

func (s *brokers) broker(lock time.Duration) (*embedded.Broker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.byLock[lock]; b != nil {
		return b, nil
	}
	b, err := embedded.Start(embedded.Config{RecordLock: lock})
	if err == nil {
		s.byLock[lock] = b
	}
	return b, err
}

func (s *brokers) close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	for lock, b := range s.byLock {
		err = errors.Join(err, validate(ctx, b.Addrs()), b.Close())
		delete(s.byLock, lock)
	}
	return err
}
