package git

import (
	"context"
	"path/filepath"
)

// Place returns the root of the work tree in which a directory is, and the path of the directory below it, with slashes and empty for
// the root itself. Both are empty outside work trees.
func Place(ctx context.Context, dir string) (root, below string) {
	top, err := worktree{dir: dir}.line(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", ""
	}
	rel, err := filepath.Rel(top, dir)
	switch {
	case err != nil || !filepath.IsLocal(rel):
		return "", ""
	case rel == ".":
		return filepath.ToSlash(top), ""
	}
	return filepath.ToSlash(top), filepath.ToSlash(rel)
}
