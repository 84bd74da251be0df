//go:build lint

package layering_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A user copies Examples from the documentation, and can neither import internal packages nor see other test files.
func TestExamplesCanBeCopied(t *testing.T) {
	dirs := map[string]bool{}
	for _, p := range packages(t) {
		if !strings.Contains("/"+p.name()+"/", "/internal/") {
			dirs[p.name()] = true
		}
	}
	examples := 0
	for dir := range dirs {
		names, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		require.NoError(t, err)
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			require.NoError(t, err)
			found := doc.Examples(file)
			examples += len(found)
			if len(found) == 0 {
				continue
			}
			assert.False(t, slices.ContainsFunc(file.Imports, importsInternal), "%s: an Example imports an internal package", name)
			for _, e := range found {
				if under("examples")(dir) {
					continue // programs, which are not imported
				}
				assert.NotNil(t, e.Play, "%s: Example%s uses identifiers that are declared in another file", name, e.Name)
			}
		}
	}
	require.Greater(t, examples, 50)
}

// A user copies the programs, too.
func TestProgramsImportNothingInternal(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range ours(p.Imports) {
			require.False(t, under("examples")(p.name()) && strings.Contains("/"+imported+"/", "/internal/"), "%s imports %s", p.name(), imported)
		}
	}
}

func importsInternal(i *ast.ImportSpec) bool {
	return strings.HasPrefix(i.Path.Value, `"`+module+"/") && strings.Contains(i.Path.Value, "/internal/")
}
