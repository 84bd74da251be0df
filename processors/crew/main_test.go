package crew_test

import (
	"os"
	"testing"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	_ "github.com/turntable-streams/turntable/internal/testing/wirecheck" // validates what graphs write
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

// The rules of crews are in small packages, and their tests in this one binary: mailbox, manifest, talk and transcript below
// internal, command and mention. The binary is also the scripted agent that the tests of crewtest run.
func TestMain(m *testing.M) {
	crewtest.Main()
	os.Exit(m.Run())
}
