package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

const (
	// trailerKey is the trailer that says which action made a commit.
	trailerKey = "Turntable-Commit"
	// historyLimit is how many commits are searched for the trailer.
	historyLimit = 1000
)

// trailer is the value of the trailer of an action: its ID and the fencing token, without spaces and control characters but one.
func trailer(actionID string, fence int64) string {
	var b strings.Builder
	for i := range len(actionID) {
		if c := actionID[i]; c > ' ' && c < 0x7f && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String() + " " + strconv.FormatInt(fence, 10)
}

// find returns the commit that an action has made, empty if it has made none that head can reach within historyLimit.
func (w worktree) find(ctx context.Context, head, value string) (string, error) {
	if head == "" {
		return "", nil
	}
	out, err := w.git(ctx, nil, "rev-list", "--max-count="+strconv.Itoa(historyLimit), "--fixed-strings",
		"--format=%H %(trailers:key="+trailerKey+",valueonly,separator=%x00)", head)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		id, values, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if id == "commit" { // the heading of rev-list
			continue
		}
		for v := range strings.SplitSeq(values, "\x00") {
			if v == value {
				return id, nil
			}
		}
	}
	return "", nil
}
