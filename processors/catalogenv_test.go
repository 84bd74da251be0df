package processors_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

func TestRouteTTLOfTheEnvironmentIsTheRetentionOfReplyTo(t *testing.T) {
	for name, tc := range map[string]struct {
		value string
		want  time.Duration
	}{
		"unset": {"", topics.DefaultRouteTTL},
		"blank": {" ", topics.DefaultRouteTTL},
		"set":   {" 4000 ", 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			opts, err := processors.CatalogOptionsFromEnv(func(name string) (string, bool) {
				if name != "REPLY_TO_STATE_TTL_MS" {
					return "", false
				}
				return tc.value, tc.value != ""
			})
			require.NoError(t, err)
			c, err := topics.For("harbor", opts...)
			require.NoError(t, err)
			require.Equal(t, tc.want, c.ReplyTo.Spec().Retention)
		})
	}
}

func TestCompactionTimeoutOfTheEnvironmentCreatesTheTopicsOfACompactor(t *testing.T) {
	for _, value := range []string{"", "1000"} {
		opts, err := processors.CatalogOptionsFromEnv(func(name string) (string, bool) {
			return value, name == "COMPACTION_TIMEOUT_MS" && value != ""
		})
		require.NoError(t, err)
		c, err := topics.For("harbor", opts...)
		require.NoError(t, err)
		require.Equal(t, value != "", c.CompactionRequest.Spec().Created)
	}
}

func TestInvalidRouteTTLIsAnError(t *testing.T) {
	for _, value := range []string{"0", "-1", "x", "99999999999999999999"} {
		_, err := processors.CatalogOptionsFromEnv(func(string) (string, bool) { return value, true })
		require.ErrorIs(t, err, processors.ErrConfig)
		require.ErrorContains(t, err, "REPLY_TO_STATE_TTL_MS")
	}
}
