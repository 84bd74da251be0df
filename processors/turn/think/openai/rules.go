package openai

import (
	"regexp"
	"strings"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
)

var (
	// anyID matches IDs that every server accepts but Mistral's.
	anyID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)
	// mistralID matches IDs that Mistral's API and its tokenizer accept.
	mistralID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
	// kimiID matches IDs that Kimi's models expect as they wrote them, such as functions.search:0.
	kimiID = regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`)

	mistral = regexp.MustCompile(`mistral|magistral|ministral|devstral|codestral|mixtral|pixtral`)
)

// rulesOf returns the rules of a server. It is known by its address or its model.
func rulesOf(s think.Settings) provider.Rules {
	r := provider.Rules{Name: provider.AnyName, ID: anyID}
	switch where := strings.ToLower(s.BaseURL + " " + s.Model); {
	case mistral.MatchString(where):
		r.ID, r.NewID = mistralID, func(digest string) string { return digest[:9] }
	case strings.Contains(where, "kimi"), strings.Contains(where, "moonshot"):
		r.ID = kimiID
	}
	return r
}
