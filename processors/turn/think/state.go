package think

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// State is what a provider requires back with a reply.
type State struct {
	// Provider and Model are those of the reply. Another provider or model does not get the state.
	Provider, Model string
	Data            topics.Raw // JSON, whose meaning only the adapter knows
}

// stateMember is the member of a message's metadata that has the state of its reply. Metadata is the part of a message that
// every worker and every turn passes on, and that no door shows.
const stateMember = "state"

// StateOf returns the state of the reply that a message of a conversation belongs to; nil if it has none, or one of another
// provider or model.
func StateOf(m topics.Message, provider, model string) topics.Raw {
	state, _ := topics.Lookup(m.Metadata, stateMember)
	of, _ := topics.Lookup(state, "provider")
	by, _ := topics.Lookup(state, "model")
	if state == nil || topics.Text(of) != provider || topics.Text(by) != model {
		return nil
	}
	data, _ := topics.Lookup(state, "data")
	return data
}

// metadata returns the metadata of a reply's message.
func metadata(agent string, s *State) topics.Raw {
	b := quoted([]byte(`{"agent":`), agent)
	if s != nil && jsontext.Value(s.Data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		b = quoted(append(b, `,"`+stateMember+`":{"provider":`...), s.Provider)
		b = quoted(append(b, `,"model":`...), s.Model)
		b = append(append(append(b, `,"data":`...), s.Data...), '}')
	}
	return append(b, '}')
}
