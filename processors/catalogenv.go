package processors

import (
	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/topics"
)

// CatalogOptionsFromEnv returns the options of topics.For that the environment sets: topics.WithRouteTTL from
// REPLY_TO_STATE_TTL_MS, in milliseconds. The turn and the deliveries read the same variable in their OptionsFromEnv, so
// that the retention of the reply-to topic is the lifetime of a route. lookup is os.LookupEnv, or reads a map in a test. A
// blank variable counts as unset. An error wraps ErrConfig.
func CatalogOptionsFromEnv(lookup func(string) (string, bool)) ([]topics.CatalogOption, error) {
	return envoption.Options([]envoption.Variable[topics.CatalogOption]{envoption.RouteTTL(topics.WithRouteTTL)}, lookup, ErrConfig)
}
