// Package beanstalk is one connection to beanstalkd that keeps deadlines, honours
// contexts and redials itself.
//
// Most commands go through [github.com/beanstalkd/go-beanstalk]. Reserve, delete and
// put, which decide how many jobs a second a worker gets through, have a codec of
// their own over the same bytes: [Conn.DeleteAndReserve] sends both commands in one
// write, [Conn.PutMany] pipelines. Commands are serialised, so that no reply of one
// can be buffered where the other would miss it.
package beanstalk
