package git

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"go.uber.org/goleak"
)

// dieBefore is the variable that makes this binary a process which kills itself before a step of a commit: the step, and the
// request as JSON.
const dieBefore = "TURNTABLE_TEST_DIE_BEFORE"

func TestMain(m *testing.M) {
	if step, request, ok := strings.Cut(os.Getenv(dieBefore), " "); ok {
		commitAndDie(step, request)
		return
	}
	goleak.VerifyTestMain(m)
}

func commitAndDie(step, request string) {
	var req crewbody.Commit
	if err := json.Unmarshal([]byte(request), &req); err != nil {
		panic(err)
	}
	committer{step: func(name string) {
		if name == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}}.commit(context.Background(), req, killedAction)
}
