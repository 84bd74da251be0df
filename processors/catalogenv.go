package processors

import (
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/topics"
)

// CatalogOptionsFromEnv returns the options of topics.For that the environment sets. The turn and the deliveries read the same
// variables in their OptionsFromEnv:
//
//	REPLY_TO_STATE_TTL_MS  topics.WithRouteTTL: the retention of the reply-to topic is the lifetime of a route
//	COMPACTION_TIMEOUT_MS  topics.WithCompaction, if it is set
//
// lookup is os.LookupEnv, or reads a map in a test. A blank variable counts as unset. An error wraps ErrConfig.
func CatalogOptionsFromEnv(lookup func(string) (string, bool)) ([]topics.CatalogOption, error) {
	return envoption.Options([]envoption.Variable[topics.CatalogOption]{
		envoption.RouteTTL(topics.WithRouteTTL),
		envoption.CompactionTimeout(func(time.Duration) topics.CatalogOption { return topics.WithCompaction() }),
	}, lookup, ErrConfig)
}
