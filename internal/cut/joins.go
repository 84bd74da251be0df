package cut

import (
	"strconv"
	"sync/atomic"

	"github.com/IBM/sarama"
)

// Joins is a balance strategy that counts the join requests of a member. Sarama joins again under the member ID that it
// has, and sends a second request, as a new member, only if the coordinator no longer knows that ID. Sarama does
// not return the new ID unless the join completes, so from the second request on the ID of the member is not known.
type Joins struct {
	sarama.BalanceStrategy
	sent  int    // since begin; Sarama joins in the goroutine that called Consume
	again func() // called at each request after the first

	renewed atomic.Int32 // calls of renew
}

// NewJoins wraps the strategy of a group's configuration. A Joins belongs to one Group.
func NewJoins(s sarama.BalanceStrategy) *Joins {
	return &Joins{BalanceStrategy: s, again: func() {}}
}

// begin is called before Sarama joins.
func (j *Joins) begin() {
	if j != nil {
		j.sent = 0
	}
}

// renew changes the subscription of later requests. A coordinator answers a request of a member that changes nothing without a
// rebalance.
func (j *Joins) renew() {
	if j != nil {
		j.renewed.Add(1)
	}
}

// SubscriptionUserData implements sarama.SubscriptionUserDataBalanceStrategy: Sarama calls it for every join request.
func (j *Joins) SubscriptionUserData(topics []string) ([]byte, error) {
	if j.sent++; j.sent > 1 {
		j.again()
	}
	if s, ok := j.BalanceStrategy.(sarama.SubscriptionUserDataBalanceStrategy); ok {
		return s.SubscriptionUserData(topics)
	}
	if n := j.renewed.Load(); n > 0 {
		return strconv.AppendInt(nil, int64(n), 10), nil // no strategy without data of its own reads it
	}
	return nil, nil
}
