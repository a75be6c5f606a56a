package broker_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/postburner/postburner/broker/brokertest"
)

// TestAnySequenceOfCommandsIsAnsweredAlike compares the embedded broker with the real
// server: two clients, whatever they send, get the same replies from both.
func TestAnySequenceOfCommandsIsAnsweredAlike(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		real, embedded := brokertest.StartBeanstalkd(t), brokertest.Start(t)
		defer real.Kill()
		clients := [2][2]*wire{{connect(t, real), connect(t, embedded)}, {connect(t, real), connect(t, embedded)}}
		for range rapid.IntRange(1, 60).Draw(r, "commands") {
			pair := clients[rapid.IntRange(0, 1).Draw(r, "client")]
			command := commandOf(r)
			var replies [2]string
			for i, w := range pair {
				w.send(command + "\r\n")
				replies[i] = w.reply()
			}
			if replies[0] != replies[1] {
				r.Fatalf("%q: beanstalkd answers %q, the broker %q", command, replies[0], replies[1])
			}
		}
	})
}

// commandOf draws a command whose reply depends on nothing but the commands before it.
func commandOf(r *rapid.T) string {
	tube := rapid.SampledFrom([]string{"default", "a", "b"}).Draw(r, "tube")
	id := rapid.IntRange(1, 8).Draw(r, "id")
	pri := rapid.SampledFrom([]int{0, 1, 1023, 1024, 5000}).Draw(r, "priority")
	delay := rapid.SampledFrom([]int{0, 0, 1000, 2000}).Draw(r, "delay")
	return rapid.SampledFrom([]string{
		fmt.Sprintf("put %d %d 1000 3\r\nabc", pri, delay), fmt.Sprintf("put %d %d 1000 0\r\n", pri, delay),
		"use " + tube, "watch " + tube, "ignore " + tube, "reserve-with-timeout 0", "reserve-with-timeout 0", fmt.Sprint("reserve-job ", id),
		fmt.Sprint("delete ", id), fmt.Sprintf("release %d %d %d", id, pri, delay), fmt.Sprintf("bury %d %d", id, pri), fmt.Sprint("touch ", id),
		fmt.Sprint("kick ", id), fmt.Sprint("kick-job ", id), fmt.Sprint("peek ", id), "peek-ready", "peek-buried",
		"list-tube-used", "list-tubes-watched", "stats-tube " + tube, "nonsense", "",
	}).Draw(r, "command")
}
