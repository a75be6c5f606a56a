// Package scheduler keeps one watchdog job armed in the scheduler tube of an
// environment, however many processes look after it and whatever becomes of them.
//
// The watchdog is a delayed job {"scheduler": true, "interval": 300, …}. Each worker
// process runs a [Scheduler] on a connection of its own, which watches that tube alone, so
// no load on other tubes can hold it up. When a reserve times out it makes sure that a
// watchdog exists; when it gets the watchdog it puts the next one and only then deletes
// the one in hand. What the next one has to know stands in its body, so nothing is lost
// when processes or the server restart.
//
// There are no schedules yet: the watchdog only keeps itself armed, as the Ruby gem's does.
// Schedules will act at one place, Scheduler.rearm, before the next watchdog is put.
//
// Duplicates, left by two processes that armed at once or by a crash between put and
// delete, are merged: the one that was put last stays, every other is deleted by
// whoever holds one that outranks it. Only a process that is the only one to hold a
// watchdog may rearm it; one that sees another process hold one gives its own back for a moment.
package scheduler
