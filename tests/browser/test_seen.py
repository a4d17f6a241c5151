"""The eyes of the browser tests are open: a test that asserts `seen == Seen()` can fail."""


def test_a_plain_page_asks_for_nothing(page, seen, tmp_path):
    file = tmp_path / "plain.html"
    file.write_text("<title>plain</title><img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='><script>1 + 1</script>")
    page.goto(file.as_uri())
    assert page.title() == "plain"
    assert seen.requests == []
    assert seen.errors == []


def test_a_request_to_the_network_is_seen(page, seen, tmp_path):
    file = tmp_path / "online.html"
    file.write_text("<script src='http://nowhere.invalid/library.js'></script>")
    page.goto(file.as_uri())
    assert seen.requests == ["http://nowhere.invalid/library.js"]


def test_errors_of_console_and_page_are_seen(page, seen, tmp_path):
    file = tmp_path / "broken.html"
    file.write_text("<script>console.log('fine'); console.error('told'); throw new Error('thrown')</script>")
    page.goto(file.as_uri())
    page.wait_for_load_state()
    assert "told" in seen.errors
    assert "thrown" in seen.errors
    assert "fine" not in seen.errors
