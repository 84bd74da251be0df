package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/command"
)

func all(text string) []command.Item { return new(command.Parser).Write(text) }

func TestX01_CommandsAreRecognisedWhereverTheyStand(t *testing.T) {
	items := all("⟦⟦ QUERY_CREW ⟧⟧")
	require.Len(t, items, 1)
	require.Empty(t, items[0].Problem)
	items = all("I lock it. ⟦⟦LOCK_FILE{\"filePath\":\"a}⟧⟧.go\"}⟧⟧⟦⟦  QUERY_PEERS\n{ }\n⟧⟧ done")
	require.Len(t, items, 2)
	require.Equal(t, `{"filePath":"a}⟧⟧.go"}`, string(items[0].Payload))
	require.EqualValues(t, 11, items[0].Offset)
	require.Equal(t, "QUERY_PEERS", items[1].Name)
}
