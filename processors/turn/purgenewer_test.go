package turn

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// A build that cannot read a row must not guess what a purge has to delete and to answer. The purge stays on its topic, uncommitted,
// until a build that reads the row has the partition.
func TestPurgeOfARowOfANewerFormatWaitsForANewerBuild(t *testing.T) {
	p := newPlay(t)
	p.ask("hi")
	newer := protowire.AppendVarint(protowire.AppendTag(p.row, 1, protowire.VarintType), turnrow.Version+1)
	e, ok := p.event("session-control", []byte(`{"action":"purge"}`))
	require.True(t, ok)
	_, err := p.newBinding().decide(table{newer, p.parts}, e, p.now)
	require.ErrorIs(t, err, rows.ErrVersion)
}
