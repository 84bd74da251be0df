package git

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlaceIsTheWorkTreeAndTheDirectoryBelow(t *testing.T) {
	f := newFixture(t, "sub/deep/a.go")
	dir, err := filepath.EvalSymlinks(f.dir)
	require.NoError(t, err)
	root, below := Place(t.Context(), dir)
	require.Equal(t, []string{filepath.ToSlash(dir), ""}, []string{root, below})
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub", "deep"), 0o755))
	root, below = Place(t.Context(), filepath.Join(dir, "sub", "deep"))
	require.Equal(t, []string{filepath.ToSlash(dir), "sub/deep"}, []string{root, below})
	root, below = Place(t.Context(), t.TempDir())
	require.Empty(t, root+below, "outside of work trees")
}
