package git

import (
	"context"

	"github.com/turntable-streams/turntable/internal/crewbody"
)

// Dirty returns a receipt whose Dirty are the paths, among those of req, with changes that are in no commit: staged, not staged,
// or files that git does not know and does not ignore. They are at most 1,000 paths and 128 KiB. The receipt has failed if git
// has, for example because req.Cwd is in no repository. Dirty blocks for at most a minute and changes nothing.
func Dirty(ctx context.Context, req crewbody.Dirty, actionID string) crewbody.Receipt {
	receipt := crewbody.Receipt{ActionID: actionID}
	paths, err := dirty(ctx, req)
	if err != nil {
		receipt.Failed, receipt.Error = true, plain(err)
		return receipt
	}
	receipt.Dirty = bounded(paths, filesLimit)
	return receipt
}

func dirty(ctx context.Context, req crewbody.Dirty) (paths []string, err error) {
	top, err := worktree{dir: req.Cwd}.line(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	w, h := worktree{dir: top}, held(req.Paths)
	if err := h.check(top); err != nil {
		return nil, err
	}
	specs, above := h.specs()
	for _, specs := range batches(append(specs, above...)) {
		out, err := w.git(ctx, nil, append([]string{
			"status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--",
		}, specs...)...)
		if err != nil {
			return nil, err
		}
		for _, p := range statusPaths(out) {
			if h.covers(p) {
				paths = append(paths, p)
			}
		}
	}
	return paths, nil
}
