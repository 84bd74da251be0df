package think

import "github.com/turntable-streams/turntable/topics"

// Tool describes a tool that a model may call. The model adapters pass it to their provider.
type Tool struct {
	Name        string
	Description string
	InputSchema topics.Raw // a JSON schema of an object
}
