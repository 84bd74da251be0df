package git

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
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

// find returns the commit that an action has made, and its files. The ID is empty if the action has made none that head can
// reach within historyLimit.
func (j job) find(ctx context.Context, head string) (done made, err error) {
	if head == "" {
		return made{}, nil
	}
	history := &messages{line: trailerKey + ": " + j.trailer}
	// Git's own search for trailers ignores what follows a scissors line, which the text of a message may contain. So the messages
	// are read as they are.
	err = j.gitTo(ctx, history, nil, "rev-list", "--max-count="+strconv.Itoa(historyLimit), "--format=%x00%H%x00%B%x00", head)
	if err != nil {
		return made{}, err
	}
	for _, id := range history.found {
		files, err := j.changed(ctx, id)
		if err != nil {
			return made{}, err
		}
		if j.mayHaveMade(files) {
			return made{id: id, files: files}, nil
		}
	}
	return made{}, nil
}

// mayHaveMade reports whether the action can have made a commit with these files: an earlier attempt may have committed paths that are
// released now. A commit of another program may quote the trailer.
func (j job) mayHaveMade(files []string) bool {
	released := held(j.req.Released)
	return len(files) > 0 && !slices.ContainsFunc(files, func(f string) bool { return !j.held.covers(f) && !released.covers(f) })
}

// messages reads the output of rev-list with the format of find, and keeps no more of it than it needs.
type messages struct {
	line  string   // the trailer that is searched for
	found []string // the IDs of the commits that have it, the newest first

	field int    // of the current commit: its heading, its ID, its message
	id    string // of the current commit
	text  []byte // of the current field; the end of it, if it is long
}

// messageTail is the size of the end of a message that is searched for the trailer, in bytes.
const messageTail = 8 << 10

func (m *messages) Write(p []byte) (int, error) {
	for rest := p; ; {
		part, after, ended := bytes.Cut(rest, []byte{0})
		m.text = append(m.text, part[max(0, len(part)-messageTail):]...)
		if surplus := len(m.text) - messageTail; surplus > 0 {
			m.text = append(m.text[:0], m.text[surplus:]...)
		}
		if !ended {
			return len(p), nil
		}
		switch m.field {
		case 1:
			m.id = string(m.text)
		case 2:
			if hasTrailer(string(m.text), m.line) {
				m.found = append(m.found, m.id)
			}
		}
		m.field, m.text, rest = (m.field+1)%3, m.text[:0], after
	}
}

// hasTrailer reports whether the last paragraph of a message begins with a trailer. In a commit of this package, the trailer is
// that paragraph. A person who amends the commit may have added other trailers.
func hasTrailer(message, line string) bool {
	lines := strings.Split(strings.TrimRight(message, " \t\r\n"), "\n")
	first := len(lines) - 1
	for first > 0 && strings.TrimSpace(lines[first-1]) != "" {
		if !otherTrailer.MatchString(lines[first]) {
			return false
		}
		first--
	}
	return first > 0 && strings.TrimRight(lines[first], " \t\r") == line
}

// otherTrailer is a trailer such as Signed-off-by, or the line that git cherry-pick -x adds.
var otherTrailer = regexp.MustCompile(`^([A-Za-z0-9-]+: |\(cherry picked from commit )`)
