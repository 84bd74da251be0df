//go:build !kafka

package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/embedded"
)

// brokers starts an embedded broker.
func brokers(t testing.TB) []string {
	t.Helper()
	b, err := embedded.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b.Addrs()
}

// tests are run as they are.
func tests(m *testing.M) goleak.TestingM { return m }
