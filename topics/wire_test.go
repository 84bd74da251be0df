package topics_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the wire reference: topics/schema, topics/WIRE.md, topics/asyncapi.json")

// requireFile requires that a file has the generated contents, or writes it.
func requireFile(t *testing.T, name string, contents []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(name, contents, 0o644))
	}
	committed, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(contents), string(committed), "%s: go test ./topics -run Wire -update writes it", name)
}

func TestWireSchemasAreThoseOfTheRecordTypes(t *testing.T) {
	all := schemas(t)
	for name, schema := range all {
		requireFile(t, "schema/"+name+".json", document(schema))
	}
	files, err := filepath.Glob("schema/*")
	require.NoError(t, err)
	require.Len(t, files, len(all))
}
