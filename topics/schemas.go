package topics

import (
	"embed"
	"strings"
)

//go:embed schema/*.json
var schemas embed.FS

// Schemas returns the JSON Schema (2020-12) of the values of each topic, by the topic's name without the agent, for example
// "message-input". Memories (memoir-context) are plain text and have none, and neither have the topics that a group keeps for
// itself. Each call returns a new map.
//
// A schema says what a writer in another language writes. Without a required member, the record is dead-lettered; null in place
// of any other member is the same as its absence. Readers accept more than the schemas: they skip unknown members, convert
// scalars, and know older names of some members.
func Schemas() map[string][]byte {
	files, _ := schemas.ReadDir("schema") // it is compiled in
	all := make(map[string][]byte, len(files))
	for _, f := range files {
		all[strings.TrimSuffix(f.Name(), ".json")], _ = schemas.ReadFile("schema/" + f.Name())
	}
	return all
}
