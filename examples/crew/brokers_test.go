package main

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nowhere is an address at which no broker can be.
const nowhere = "127.0.0.1:1"

func TestBrokersThatCannotBeReachedAreNamedAtOnce(t *testing.T) {
	for _, args := range [][]string{
		{"-brokers", nowhere},
		{"-brokers", nowhere, "-agent", "go"}, // it is not started
	} {
		out, errs, begun := new(buffer), new(buffer), time.Now()
		require.Equal(t, 1, command(t.Context(), args, strings.NewReader(""), out, errs))
		require.Contains(t, errs.String(), nowhere)
		require.Contains(t, errs.String(), "connection refused")
		require.Empty(t, out.String(), "nothing was begun")
		require.Less(t, time.Since(begun), brokersWithin)
	}
}

func TestBrokerThatDoesNotAnswerIsNamedAfterTheLimit(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it accepts no connection, so no request is answered
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	err = checkBrokers(t.Context(), []string{listener.Addr().String()}, 50*time.Millisecond)
	require.ErrorContains(t, err, listener.Addr().String())
	require.ErrorContains(t, err, "50ms")
}

// A broker can answer the first request, and the processes cannot start nevertheless, for example because the address that it
// advertises cannot be reached.
func TestStartIsLimited(t *testing.T) {
	s := &stage{screen: &screen{out: io.Discard}, errs: new(buffer), brokers: []string{nowhere}, startWithin: 2 * time.Second}
	err := s.with(t.Context(), nil)
	require.ErrorContains(t, err, "the processors are not ready: not started within 2s")
	require.ErrorContains(t, err, nowhere)
}
