package crewhttp

import (
	"cmp"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// optionsOf returns the IDs of the options of a permission request.
func optionsOf(asked view.PermissionAsked) (ids []string) {
	var options []struct {
		ID       string `json:"id"`
		OptionID string `json:"optionId"`
	}
	if json.Unmarshal(asked.Options, &options, lenient) != nil {
		return nil
	}
	for _, o := range options {
		ids = append(ids, cmp.Or(o.OptionID, o.ID))
	}
	return ids
}
