package talk

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

// Assignment is an active delegation of a lead.
type Assignment struct{ AgentID, Task string }

// sharing is how many agents work on the same before they get a group.
const sharing = 3

// AutoGroup creates a group "<word>-team" for the agents of a lead whose tasks have the same first significant word, if there
// are at least three of them, and adds those that came later. Call it after a delegation with all active ones of the lead. One
// call changes one group.
func (t *Talk) AutoGroup(s *mailbox.Step, r *roster.Roster, lead *roster.Member, active []Assignment) {
	var words []string
	agents := map[string][]string{} // read in the order of words
	for _, a := range active {
		word := significant(a.Task)
		if word == "" || !reachable(r.Find(a.AgentID)) {
			continue
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
		if !slices.Contains(agents[word], a.AgentID) {
			agents[word] = append(agents[word], a.AgentID)
		}
	}
	for _, word := range words {
		if len(agents[word]) >= sharing && t.team(s, r, lead, word, agents[word]) {
			return
		}
	}
}

// team creates the group of a word or adds to it, and reports whether it changed.
func (t *Talk) team(s *mailbox.Step, r *roster.Roster, lead *roster.Member, word string, ids []string) bool {
	name := word + "-team"
	if g := t.find(lead.Id, name); g != nil {
		if g.Archived {
			return false
		}
		added := g.add(s, ids)
		g.welcomeAll(s, r, added, "")
		return len(added) > 0
	}
	g := t.create(s, r, lead.Id, name, nil, ids)
	if g == nil {
		return false
	}
	t.post(s, r, g, System, fmt.Sprintf("This group is for the agents that work on %q. %s", word, g.memberLine(r)))
	return true
}

// stopWords say nothing about a task.
var stopWords = map[string]bool{
	"about": true, "after": true, "also": true, "before": true, "from": true, "have": true, "into": true, "make": true,
	"more": true, "please": true, "should": true, "some": true, "that": true, "their": true, "them": true, "then": true,
	"there": true, "these": true, "this": true, "those": true, "what": true, "when": true, "where": true, "which": true,
	"while": true, "will": true, "with": true, "would": true, "your": true, "task": true, "need": true, "needs": true,
	"must": true, "each": true, "every": true, "using": true,
	// What is done says less than what it is done to.
	"implement": true, "create": true, "write": true, "build": true, "review": true, "test": true, "update": true,
	"check": true, "design": true, "develop": true,
}

// maxWord is the length of a significant word in characters; longer ones are no words.
const maxWord = 40

// significant returns the first word of a task with more than three letters that is no stop word, in lower case.
func significant(task string) string {
	for word := range strings.FieldsFuncSeq(strings.ToLower(task), func(c rune) bool { return !unicode.IsLetter(c) }) {
		if n := len([]rune(word)); n > 3 && n <= maxWord && !stopWords[word] {
			return word
		}
	}
	return ""
}
