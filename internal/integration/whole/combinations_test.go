package whole

import (
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// switches are what a user can switch on, alone or with others. The name of a combination has the letters of those that are on.
type switches uint32

const (
	exactlyOnce    switches = 1 << iota // E
	streams                             // S: the model streams
	answersLater                        // C: the tool answers through the callback door
	asksPeople                          // A: a tool waits for an approval
	delivers                            // D: answers go to a service
	remembers                           // M: memory of users
	budgets                             // U
	delegates                           // H: tasks are handed off to agents
	hasPeers                            // P: tasks are exchanged with another instance
	compacts                            // K: a compactor summarizes
	measures                            // L: latencies of tools
	bothSpellings                       // F: records for FlightDeck's SDKs
	ordered                             // O: the outputs of a step are ordered
	keepsTables                         // T: tables are on disk
	inTwoProcesses                      // 2: the doors run apart from the rest
	hasChannels                         // N: people write on a platform
)

const letters = "ESCADMUHPKLFOT2N"

func (s switches) String() string {
	var b strings.Builder
	for i, letter := range letters {
		if s&(1<<i) != 0 {
			b.WriteRune(letter)
		}
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

func (s switches) has(one switches) bool { return s&one != 0 }

// combinations returns a few combinations in which each pair of switches is off and on in all four ways. Each switch is on in
// four of the seven combinations after the first, and no two in the same four: then two switches are on together somewhere,
// because 4 + 4 > 7, and each is on somewhere without the other. In the first one all are off.
func combinations() []switches {
	rows := make([]switches, 8)
	n := 0
	for set := range 1 << 7 {
		if n == len(letters) || bits.OnesCount(uint(set)) != 4 {
			continue
		}
		for row := range 7 {
			if set&(1<<row) != 0 {
				rows[row+1] |= 1 << n
			}
		}
		n++
	}
	return rows
}

func TestCombinationsCoverAllPairs(t *testing.T) {
	for a := range letters {
		for b := range a {
			seen := map[[2]bool]bool{}
			for _, c := range combinations() {
				seen[[2]bool{c.has(1 << a), c.has(1 << b)}] = true
			}
			require.Len(t, seen, 4, "%c and %c", letters[a], letters[b])
		}
	}
}

// Every combination of what a user can switch on keeps the promises, seen through the doors that users see.
func TestEveryCombinationKeepsThePromises(t *testing.T) {
	for _, c := range combinations() {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			newCombined(t, c).play()
		})
	}
}
