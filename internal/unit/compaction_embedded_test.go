//go:build !kafka

package unit_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

// compacting starts a broker; compact has it compact its topics now.
func compacting(t testing.TB) (brokers []string, compact func()) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c.ListenAddrs(), c.Compact
}
