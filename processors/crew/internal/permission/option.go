package permission

import (
	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/topics"
)

// Bounds of the choices of a request.
const (
	maxOptions    = 16
	maxOptionID   = 256
	maxOptionName = 256
)

// offered is an option as ACP has it.
type offered struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// optionsOf returns the options of a request that have an ID. An option whose ID is too long cannot be chosen, and neither
// can allow_always of a dangerous request: they are left out.
func optionsOf(raw topics.Raw, dangerous bool) (list []*Option) {
	var all []offered
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	for _, o := range all {
		if o.ID == "" || len(o.ID) > maxOptionID || dangerous && o.Kind == "allow_always" || len(list) == maxOptions {
			continue
		}
		list = append(list, &Option{Id: o.ID, Name: truncate.Within(o.Name, maxOptionName), Kind: truncate.Within(o.Kind, maxOptionName)})
	}
	return list
}

// encodedOptions returns options as ACP has them, nil for none.
func encodedOptions(list []*Option) topics.Raw {
	if len(list) == 0 {
		return nil
	}
	all := make([]offered, len(list))
	for i, o := range list {
		all[i] = offered{ID: o.Id, Name: o.Name, Kind: o.Kind}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return raw
}

// allowOnce returns the first option that allows once, empty if there is none.
func (r *Request) allowOnce() string { return r.first("allow_once") }

func (r *Request) first(kind string) string {
	for _, o := range r.Options {
		if o.Kind == kind {
			return o.Id
		}
	}
	return ""
}
