package kafkatest

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReservedPortsDiffer(t *testing.T) {
	bare(t)
	seen := make(map[int]bool)
	for range 20 {
		p, err := reservePort()
		require.NoError(t, err)
		require.False(t, seen[p.number])
		seen[p.number] = true
		t.Cleanup(func() { require.NoError(t, p.release()) })
	}
}

func TestPortIsRejectedWhileReservedOrInUse(t *testing.T) {
	bare(t)
	p, err := reservePort()
	require.NoError(t, err)
	_, err = reserveNumber(p.number)
	require.ErrorContains(t, err, "in use")
	require.NoError(t, p.release())

	l, err := net.Listen("tcp", p.addr())
	require.NoError(t, err)
	_, err = reserveNumber(p.number)
	require.ErrorContains(t, err, "in use")
	require.NoError(t, l.Close())

	p, err = reserveNumber(p.number)
	require.NoError(t, err)
	require.NoError(t, p.release())
}
