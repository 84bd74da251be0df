package kafkatest

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSharedWithoutMainReturnsAnError(t *testing.T) {
	_, err := new(shared).bootstrap()
	require.ErrorContains(t, err, "kafkatest.Main")
}

func TestSharedKeepsFailingAfterAFailedStart(t *testing.T) {
	bare(t)
	t.Setenv(EnvBootstrap, "")
	var s shared
	s.setAllowed(true)
	_, first := s.bootstrap()
	require.ErrorIs(t, first, ErrJava)
	_, again := s.bootstrap()
	require.Equal(t, first, again)
	require.NoError(t, s.end())
}

func TestErrorNamesTheUnreachableExternalCluster(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	for foreign, want := range map[string]string{addr: addr, " , ": "no address"} {
		_, _, err = startOrConnect(foreign, 200*time.Millisecond)
		require.ErrorContains(t, err, EnvBootstrap)
		require.ErrorContains(t, err, want)
	}
}

func TestMainReturnsTheExitCodeOfTheTests(t *testing.T) {
	for _, code := range []int{0, 1} {
		closed := false
		var s shared
		run := &tests{shared: &s, m: run(func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			require.True(t, s.allowed)
			s.cluster = &Cluster{close: func() error { closed = true; return nil }}
			return code
		})}
		require.Equal(t, code, run.Run())
		require.True(t, closed)
	}

	var s shared
	failing := &tests{shared: &s, m: run(func() int {
		s.cluster = &Cluster{close: func() error { return context.Canceled }}
		return 0
	})}
	require.Equal(t, 1, failing.Run(), "a broker that does not end is a failure")
}

type run func() int

func (r run) Run() int { return r() }
