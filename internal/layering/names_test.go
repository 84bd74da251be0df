//go:build lint

package layering_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// agentName matches the construction of a name from an agent's name.
var agentName = regexp.MustCompile(`(?i)\bagent(\(\))? ?\+ ?"-`)

// The catalog rejects agents that would share a topic or a group with another agent. It compares only the names that it has.
func TestNamesOfAnAgentAreMadeByTheCatalogOnly(t *testing.T) {
	top := os.DirFS(root)
	found := 0
	for _, dir := range []string{"topics", "processors", "internal"} {
		require.NoError(t, fs.WalkDir(top, dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
				strings.HasPrefix(name, "internal/testing/") || strings.HasPrefix(name, "internal/bench/") {
				return err
			}
			text, err := fs.ReadFile(top, name)
			if err != nil {
				return err
			}
			if !agentName.Match(text) {
				return nil
			}
			found++
			require.Contains(t, []string{"topics/catalog.go", "topics/groups.go"}, name, "let the catalog make the name")
			return nil
		}))
	}
	require.Equal(t, 2, found)
}
