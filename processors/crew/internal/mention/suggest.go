package mention

import (
	"regexp"
	"strings"

	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// Candidate is an agent that may be mentioned.
type Candidate struct {
	ID       string
	RoleID   string
	RoleName string
	Status   string // one of view
}

// MaxMembers is the largest number of suggestions of SuggestMembers.
const MaxMembers = 8

var queryToken = regexp.MustCompile(`@(\w*)$`)

// Query returns what a person who types has written after @, and whether the text before the cursor ends with a mention.
func Query(before string) (query string, typing bool) {
	m := queryToken.FindStringSubmatch(before)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// Suggest returns the running and idle agents that a query may mean, in their order: those whose short ID begins with it or whose
// role's name contains it, without regard to case.
func Suggest(query string, agents []Candidate) (fit []Candidate) {
	for _, a := range agents {
		if view.Live(a.Status) && fits(a, query) {
			fit = append(fit, a)
		}
	}
	return fit
}

// SuggestMembers is Suggest for the members of a group, whatever their status is. It returns at most MaxMembers.
func SuggestMembers(query string, members []Candidate) (fit []Candidate) {
	for _, m := range members {
		if len(fit) < MaxMembers && fits(m, query) {
			fit = append(fit, m)
		}
	}
	return fit
}

func fits(a Candidate, query string) bool {
	query = strings.ToLower(query)
	return strings.HasPrefix(strings.ToLower(view.ShortID(a.ID)), query) || strings.Contains(strings.ToLower(a.RoleName), query)
}

// Insert replaces the mention that ends at the cursor, from the last @ before it, by the agent's short ID and a space. It returns
// the text and the new cursor. Without an @ before the cursor it inserts there. The cursor is a place in bytes; one outside the
// text is taken for the text's beginning or end.
func Insert(text string, cursor int, id string) (string, int) {
	cursor = min(max(cursor, 0), len(text))
	start := strings.LastIndexByte(text[:cursor], '@')
	if start < 0 {
		start = cursor
	}
	inserted := "@" + view.ShortID(id) + " "
	return text[:start] + inserted + text[cursor:], start + len(inserted)
}
