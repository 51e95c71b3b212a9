//! Passwords, codes and links: right once, and not to be guessed.

use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use kernel::Role;
use sha1::Sha1;
use store::args;
use toolyard::yard::Yard;

use super::{PASSWORD, person, signed_in};
use crate::support::{Browser, Database, Reply, Test, hidden, on_both, sent_to};

/// What an authenticator app shows (RFC 6238), written a second time so that it can disagree.
fn shown(secret: &str, at: i64) -> String {
    let mut bits = 0_u64;
    let mut key = Vec::new();
    let mut count = 0;
    for letter in secret.bytes() {
        let value = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".iter().position(|known| *known == letter).unwrap();
        bits = bits << 5 | value as u64;
        count += 5;
        if count >= 8 {
            count -= 8;
            key.push(u8::try_from(bits >> count & 255).unwrap());
        }
    }
    let mut mac = Hmac::<Sha1>::new_from_slice(&key).unwrap();
    mac.update(&u64::try_from(at / 30).unwrap().to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let at = usize::from(digest[19] & 15);
    let number = u32::from_be_bytes(digest[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

fn between(page: &str, start: &str, end: &str) -> Vec<String> {
    page.split(start).skip(1).map(|rest| rest.split(end).next().unwrap().to_owned()).collect()
}

fn code(test: &Test, secret: &str) -> String {
    shown(secret, test.clock.now().seconds())
}

/// Switches the app on: its secret, and the recovery codes.
async fn with_app(test: &Test, browser: &mut Browser<'_>) -> (String, Vec<String>) {
    let page = browser.submit("/account", &[("action", "begin_totp")]).await;
    let secret = between(&page.text, "<code>", "</code>").remove(0);
    assert!(page.text.contains(&format!("otpauth://totp/Toolyard:ada%40example.com?secret={secret}")), "{}", page.text);
    let wrong = browser.answer("/account", &page, &[("action", "confirm_totp"), ("code", "000000")]).await;
    assert!(wrong.status == 400 && wrong.text.contains("This code is not right"), "{}", wrong.text);
    let right = code(test, &secret);
    let done = browser.answer("/account", &page, &[("action", "confirm_totp"), ("code", &right)]).await;
    assert_eq!(done.status, 200, "{}", done.text);
    let codes = between(&done.text, "<li><code>", "</code>");
    assert_eq!(codes.len(), 10);
    (secret, codes)
}

async fn asked_for_a_code(browser: &mut Browser<'_>) -> Reply {
    let page = browser.sign_in(&[("email", "ada@example.com"), ("password", PASSWORD)]).await;
    assert!(page.status == 200 && page.text.contains("One more step"), "{}", page.text);
    page
}

on_both! {
    async fn a_password_is_changed_by_who_knows_it_and_ends_other_sessions(test: &Test) {
        person(test, "ada@example.com", Some(("default", Role::Viewer))).await;
        let (mut here, mut there) = (signed_in(test, "ada@example.com").await, signed_in(test, "ada@example.com").await);
        let change = async |browser: &mut Browser<'_>, current: &str, new: &str| {
            browser.submit("/account", &[("action", "password"), ("current", current), ("new", new)]).await
        };
        assert!(change(&mut here, "wrong password", "something new 1").await.text.contains("That did not work."));
        assert!(change(&mut here, PASSWORD, "short").await.text.contains("10 characters at least"));
        there.me().await.expect(200);
        assert_eq!(change(&mut here, PASSWORD, "something new 1").await.status, 200);
        here.me().await.expect(200);
        there.me().await.expect(401);
        assert_eq!(Browser::new(test).sign_in(&[("email", "ada@example.com"), ("password", PASSWORD)]).await.status, 400);
        sent_to(&Browser::new(test).sign_in(&[("email", "ada@example.com"), ("password", "something new 1")]).await);
    }

    async fn a_code_is_needed_and_taken_once(test: &Test) {
        person(test, "ada@example.com", None).await;
        let mut first = signed_in(test, "ada@example.com").await;
        let (secret, recovery) = with_app(test, &mut first).await;

        let mut browser = Browser::new(test);
        let page = asked_for_a_code(&mut browser).await;
        let ticket = hidden(&page.text, "ticket");
        browser.me().await.expect(401);
        // The code that switched it on is used up.
        let used = code(test, &secret);
        let send = async |browser: &mut Browser<'_>, code: &str| browser.answer("/sign-in", &page, &[("ticket", &ticket), ("code", code)]).await;
        assert_eq!(send(&mut browser, &used).await.status, 400);
        test.clock.advance(Duration::from_secs(30));
        let right = code(test, &secret);
        assert_eq!(sent_to(&send(&mut browser, &right).await), "/app");
        // Replayed: the same code with the same ticket, and with a new one.
        let mut thief = Browser { cookies: browser.cookies.clone(), ..Browser::new(test) };
        thief.cookies.remove("toolyard-session");
        assert_eq!(send(&mut thief, &right).await.status, 400);
        let again = asked_for_a_code(&mut thief).await;
        let reply = thief.answer("/sign-in", &again, &[("ticket", &hidden(&again.text, "ticket")), ("code", &right)]).await;
        assert!(reply.status == 400 && reply.text.contains("it was used already"), "{}", reply.text);

        // A recovery code works once, however it is written.
        let spaced = recovery[0].to_uppercase().replace('-', " ");
        let mut lost = Browser::new(test);
        let page = asked_for_a_code(&mut lost).await;
        let fields = [("ticket", hidden(&page.text, "ticket")), ("code", spaced)];
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(sent_to(&lost.answer("/sign-in", &page, &fields).await), "/app");
        lost.cookies.remove("toolyard-session");
        assert_eq!(lost.answer("/sign-in", &page, &fields).await.status, 400);

        // Two at the same time with one code: one of them gets in.
        test.clock.advance(Duration::from_mins(1));
        let right = code(test, &secret);
        let (mut one, mut two) = (Browser::new(test), Browser::new(test));
        let (page_one, page_two) = (asked_for_a_code(&mut one).await, asked_for_a_code(&mut two).await);
        let (ticket_one, ticket_two) = (hidden(&page_one.text, "ticket"), hidden(&page_two.text, "ticket"));
        let (with_one, with_two) = ([("ticket", ticket_one.as_str()), ("code", &right)], [("ticket", ticket_two.as_str()), ("code", &right)]);
        let (a, b) = tokio::join!(one.answer("/sign-in", &page_one, &with_one), two.answer("/sign-in", &page_two, &with_two));
        let mut statuses = [a.status.as_u16(), b.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [303, 400]);

        // The word that a password was right is good for ten minutes, and not after the password changed.
        let mut late = Browser::new(test);
        let page = asked_for_a_code(&mut late).await;
        let ticket = hidden(&page.text, "ticket");
        test.clock.advance(Duration::from_mins(11));
        let right = code(test, &secret);
        let reply = late.answer("/sign-in", &page, &[("ticket", &ticket), ("code", &right)]).await;
        assert!(reply.status == 400 && reply.text.contains("started too long ago"), "{}", reply.text);
        for forged in ["", "x.y", &ticket[1..]] {
            assert_eq!(late.answer("/sign-in", &page, &[("ticket", forged), ("code", &right)]).await.status, 400);
        }

        // The secret is sealed, and sealed again when the key is rotated.
        let row = test.yard.db.optional("select totp from users", args![]).await.unwrap().unwrap();
        let sealed: Vec<u8> = row.get("totp").unwrap();
        assert!(sealed.len() > 20 + 29 && test.yard.vault.sealer.is_current(&sealed));
        let ring = toolyard::vault::key_ring(&test.yard.config).unwrap().with_new_key();
        let sealer = kernel::seal::Sealer::new(ring);
        assert_eq!(people::reseal(&test.yard.db, &sealer).await.unwrap(), 1);
        assert_eq!(people::reseal(&test.yard.db, &sealer).await.unwrap(), 0);
    }

    async fn the_app_is_switched_off_with_a_code(test: &Test) {
        person(test, "ada@example.com", None).await;
        let mut browser = signed_in(test, "ada@example.com").await;
        let (secret, _) = with_app(test, &mut browser).await;
        test.clock.advance(Duration::from_secs(30));
        let page = browser.submit("/account", &[("action", "begin_totp")]).await;
        assert_eq!(page.status, 400, "one that counts is not replaced");
        assert_eq!(browser.submit("/account", &[("action", "remove_totp"), ("code", "nonsense")]).await.status, 400);
        let right = code(test, &secret);
        assert_eq!(browser.submit("/account", &[("action", "remove_totp"), ("code", &right)]).await.status, 200);
        signed_in(test, "ada@example.com").await.me().await.expect(200);
    }

    async fn guessing_stops_by_account_and_by_address(test: &Test) {
        person(test, "ada@example.com", None).await;
        // By account, from as many addresses as one likes, and whether the account exists or not.
        for email in ["ada@example.com", "nobody@example.com"] {
            for number in 0..10_u8 {
                let mut browser = Browser { address: Some([198, 51, 100, number].into()), ..Browser::new(test) };
                let reply = browser.sign_in(&[("email", email), ("password", "wrong password")]).await;
                assert!(reply.status == 400 && reply.text.contains("That did not work."), "{}", reply.text);
            }
            let mut browser = Browser { address: Some([198, 51, 100, 99].into()), ..Browser::new(test) };
            let reply = browser.sign_in(&[("email", &email.to_uppercase()), ("password", PASSWORD)]).await;
            assert!(reply.status == 429 && reply.text.contains("Try again in 15 minutes"), "{}", reply.text);
        }
        let kept = test.yard.db.all("select name from sign_in_tries where name like '%@%'", args![]).await.unwrap();
        assert!(kept.is_empty(), "addresses of people are not kept with their tries");
        test.clock.advance(Duration::from_mins(15));
        sent_to(&Browser::new(test).sign_in(&[("email", "ada@example.com"), ("password", PASSWORD)]).await);

        // By address, whatever is tried.
        let address = Some("2001:db8:1:2::7".parse().unwrap());
        let mut browser = Browser { address, ..Browser::new(test) };
        let page = browser.get("/sign-in").await;
        for _ in 0..100 {
            assert_eq!(browser.answer("/sign-in", &page, &[("key", "guess")]).await.status, 400);
        }
        assert_eq!(browser.answer("/sign-in", &page, &[("key", &test.owner)]).await.status, 429);
        browser.address = Some("2001:db8:1:2:ffff::1".parse().unwrap());
        assert_eq!(browser.answer("/sign-in", &page, &[("key", &test.owner)]).await.status, 429, "the same customer");
        browser.address = Some("2001:db8:1:3::7".parse().unwrap());
        sent_to(&browser.answer("/sign-in", &page, &[("key", &test.owner)]).await);

        // Codes are counted too.
        let mut ada = signed_in(test, "ada@example.com").await;
        let (secret, _) = with_app(test, &mut ada).await;
        let mut guesser = Browser::new(test);
        let page = asked_for_a_code(&mut guesser).await;
        let ticket = hidden(&page.text, "ticket");
        let mut statuses = Vec::new();
        for guess in 0..12 {
            statuses.push(guesser.answer("/sign-in", &page, &[("ticket", &ticket), ("code", &format!("{guess:06}"))]).await.status.as_u16());
        }
        assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 4, "two were used to switch it on: {statuses:?}");
        test.clock.advance(Duration::from_secs(30));
        let right = code(test, &secret);
        assert_eq!(guesser.answer("/sign-in", &page, &[("ticket", &ticket), ("code", &right)]).await.status, 429);
    }

    async fn a_link_signs_in_once(test: &Test) {
        let user = person(test, "ada@example.com", None).await;
        let link = |token: &kernel::key::PlainKey| format!("/sign-in/link/{}", token.expose());
        let token = test.yard.people.make_link(user).await.unwrap();
        let mut browser = Browser::new(test);
        for _ in 0..3 {
            let page = browser.get(&link(&token)).await;
            assert!(page.status == 200 && page.text.contains("Sign in as ada@example.com"), "looking does not use it up");
        }
        assert_eq!(Browser::new(test).post(&link(&token), &[]).await.status, 400, "a form of ours is needed");
        let page = browser.get(&link(&token)).await;
        assert_eq!(sent_to(&browser.answer(&link(&token), &page, &[]).await), "/app");
        assert_eq!(browser.answer(&link(&token), &page, &[]).await.status, 400);
        assert_eq!(browser.get(&link(&token)).await.status, 400);

        let late = test.yard.people.make_link(user).await.unwrap();
        test.clock.advance(Duration::from_hours(24));
        assert_eq!(browser.get(&link(&late)).await.status, 400);
        let disabled = test.yard.people.make_link(user).await.unwrap();
        test.yard.people.set_disabled(user, true).await.unwrap();
        assert_eq!(browser.get(&link(&disabled)).await.status, 400);
    }
}

/// The counts are rows, so that a second node knows of them.
#[tokio::test]
async fn guesses_are_counted_on_all_nodes() {
    let test = Test::start(Database::Postgres).await;
    person(&test, "ada@example.com", None).await;
    let other = Yard::open_at(test.yard.config.clone(), test.clock.clone()).await.unwrap();
    let (visitor, wrong) = (people::Visitor::default(), secrecy::SecretString::from("wrong password"));
    let (mut refused, mut stopped) = (0, 0);
    for number in 0..12 {
        let people = if number % 2 == 0 { &test.yard.people } else { &other.people };
        match people.by_password("ada@example.com", &wrong, &visitor).await {
            Err(people::PeopleError::Refused) => refused += 1,
            Err(people::PeopleError::TooMany { .. }) => stopped += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((refused, stopped), (10, 2));
}

/// An account that does not exist takes as long to refuse as one that does.
#[tokio::test]
async fn time_tells_nothing_of_an_account() {
    let test = Test::start(Database::Sqlite).await;
    person(&test, "ada@example.com", None).await;
    test.yard.accounts.create_user("sso@example.com", None).await.unwrap();
    let wrong = secrecy::SecretString::from("wrong password");
    let emails = ["warm@example.com", "ada@example.com", "nobody@example.com", "sso@example.com", "no address"];
    let mut fastest = [Duration::MAX; 5];
    // In turns, so that whatever else the machine does slows all of them down.
    for _ in 0..5 {
        for (email, fastest) in emails.iter().zip(&mut fastest) {
            let started = Instant::now();
            assert!(test.yard.people.by_password(email, &wrong, &people::Visitor::default()).await.is_err());
            *fastest = started.elapsed().min(*fastest);
        }
    }
    let known = fastest[1];
    // Without the work of a password, a refusal would take a hundredth.
    assert!(fastest[2..].iter().all(|time| *time > known / 3 && *time < known * 3), "{fastest:?}");
}

#[tokio::test]
async fn passwords_can_be_switched_off() {
    let test = Test::start(Database::Sqlite).await;
    person(&test, "ada@example.com", None).await;
    let mut config = test.yard.config.clone();
    config.sign_in.passwords = false;
    let yard = Yard::open_at(config, test.clock.clone()).await.unwrap();
    let refused = yard.people.by_password("ada@example.com", &PASSWORD.into(), &people::Visitor::default()).await;
    assert!(matches!(refused, Err(people::PeopleError::PasswordsOff)));
    assert!(yard.people.set_password(yard.accounts.user_by_email("ada@example.com").await.unwrap(), &PASSWORD.into()).await.is_err());
}
