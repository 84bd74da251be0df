package mention

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// Kind says what a Segment is.
type Kind int

const (
	// Plain is Markdown without mentions.
	Plain Kind = iota
	// Agent is a mention of an agent.
	Agent
	// User is a mention of the person.
	User
)

// Segment is a part of a text to show.
type Segment struct {
	Kind Kind
	// Source is the part of the text. All sources together are the text.
	Source string
	// AgentID and Badge are set for an Agent, and Badge for a User: what is shown instead of Source.
	AgentID string
	Badge   string
}

// shownToken is @ and the beginning of an ID, or a word that may name a role. The first that fits wins: @dead-code is the ID dead.
var shownToken = regexp.MustCompile(`@([0-9a-f]{4,8}|[A-Za-z][\w-]*)\b`)

var isID = regexp.MustCompile(`^[0-9a-f]{4,8}$`)

// Render splits a text in Markdown at its mentions. Only the text of paragraphs and of list items is searched, without what is
// emphasised, code, a link, a table, a heading or a quotation. A mention that means no agent remains plain.
func Render(source string, agents []Candidate) (segments []Segment) {
	done := 0
	for _, s := range shownRanges(source) {
		for _, m := range scan(source, shownToken, s.start, s.end) {
			shown, ok := resolve(m.Token, agents)
			if !ok {
				continue
			}
			if m.Start > done {
				segments = append(segments, Segment{Source: source[done:m.Start]})
			}
			shown.Source = source[m.Start:m.End]
			segments = append(segments, shown)
			done = m.End
		}
	}
	if done < len(source) {
		segments = append(segments, Segment{Source: source[done:]})
	}
	return segments
}

// resolve returns what a mention means.
func resolve(token string, agents []Candidate) (Segment, bool) {
	if strings.EqualFold(token, "user") {
		return Segment{Kind: User, Badge: "@user"}, true
	}
	var found []Candidate
	for _, a := range agents {
		if isID.MatchString(token) && strings.HasPrefix(a.ID, token) || !isID.MatchString(token) && isRole(a, token) {
			found = append(found, a)
		}
	}
	// An ID that means several agents is delivered to none of them, so no badge claims otherwise. A role means its first agent.
	if len(found) == 0 || len(found) > 1 && isID.MatchString(token) {
		return Segment{}, false
	}
	a := found[0]
	return Segment{Kind: Agent, AgentID: a.ID, Badge: "@" + strings.ToLower(a.RoleName) + "-" + view.ShortID(a.ID)}, true
}

func isRole(a Candidate, token string) bool {
	return strings.EqualFold(a.RoleID, token) || strings.EqualFold(a.RoleName, token) ||
		strings.EqualFold(strings.Join(strings.Fields(a.RoleName), "-"), token)
}

// shownRanges returns where mentions are shown, in order. Neighbouring parts are joined: Markdown divides text at characters that
// might have had a meaning.
func shownRanges(source string) (found []span) {
	_ = ast.Walk(markdown.Parse(text.NewReader([]byte(source))), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n.Kind() {
		case ast.KindDocument, ast.KindList, ast.KindListItem:
			return ast.WalkContinue, nil
		case ast.KindParagraph, ast.KindTextBlock:
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				t, ok := c.(*ast.Text)
				if !ok {
					continue
				}
				if last := len(found) - 1; last >= 0 && found[last].end == t.Segment.Start {
					found[last].end = t.Segment.Stop
				} else {
					found = append(found, span{t.Segment.Start, t.Segment.Stop})
				}
			}
		}
		return ast.WalkSkipChildren, nil
	})
	return found
}

// ToUser reports whether a text of an agent is directed to the person: @user stands on a line of its own.
func ToUser(message string) bool {
	for line := range strings.Lines(message) {
		if strings.EqualFold(strings.TrimSpace(line), "@user") {
			return true
		}
	}
	return false
}
