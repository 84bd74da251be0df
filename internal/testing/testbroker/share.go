package testbroker

import (
	"os"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

// ShareGroups reports whether the broker of the tests offers share groups.
func ShareGroups() bool {
	return Embedded || os.Getenv(kafkatest.EnvVersion) != kafkatest.BeforeShareGroups
}
